exec(open('/tmp/attackq/auth.py').read())
s.put('/pub/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext','phonetic']},{'name':'n','type':'exact'},{'name':'@path','type':['exact','trigram']}]})
s.put('/priv/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'secretfield','type':['exact','trigram','fulltext']},{'name':'t','type':['exact','fulltext']}]})
for i in range(5): s.put(f'/pub/a{i}.json',{'t':f'apple word{i}','n':i})
for i in range(5): s.put(f'/priv/p{i}.json',{'t':f'zebra priv{i}','secretfield':'qq%d'%i,'n':5000+i})
s.q('POST','/files/batch',{'operations':[{'op':'link','path':'/pub/lnk','target':'/priv'},{'op':'link','path':'/pub/lnkf.json','target':'/priv/p1.json'}]})
# gus: may configure /pub ; letters: c r u d l i f y ; which is configure? 'y'
gus=user('gus',[('/pub','crudl--y',None)]); G=key_of(gus)
hal=user('hal',[('/pub','crudl---',None)]); H=key_of(hal)
def P(n,t,path,body): 
    r=s.put(path,body,token=t); print(n,'PUT',path,r[0],json.dumps(r[1])[:160] if not isinstance(r[1],bytes) else r[1][:100]); return r
cfg={'glob':'**/*','indexes':[{'name':'secretfield','type':'exact'}]}
P('gus',G,'/pub/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext','phonetic']},{'name':'n','type':'exact'}]})
P('hal',H,'/pub/.svc-config/indexes.json',cfg); P('hal',H,'/pub/x/.svc-config/indexes.json',cfg)
P('gus',G,'/.svc-config/indexes.json',cfg); P('gus',G,'/pub/lnk/.svc-config/indexes.json',cfg)
for g in ('../priv/*','/priv/**','**/../../priv/*','..','../**','**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/**/x','*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b','[','{a,b}','a\\','\x00',''): P('gus glob '+repr(g)[:20],G,'/pub/.svc-config/indexes.json',{'glob':g,'indexes':[{'name':'t','type':'exact'}]})
for f in ({'name':'t','type':'exact','source':['/(a+)+$/']},{'name':'t','type':'exact','source':['/a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b/']},{'name':'t','type':'exact','source':['/(?=a)b/']},{'name':'t','type':'exact','source':['/a{1,1000}{1,1000}/']},{'name':'t','type':'exact','source':['/(a|a|a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)(a|aa)$/']},{'name':'t','type':'exact','source':['/.*.*.*.*.*.*.*.*=/']},{'name':'t','type':'exact','source':['/[/']},{'name':'t','type':'exact','source':['/a{0,256}a{0,256}a{0,256}a{0,256}b/']},{'name':'t','type':'exact','source':['/\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*\\w*!/']},{'name':'t','type':'../../x'},{'name':'t','type':'exact','path':'/etc'},{'name':'t','type':'fulltext','language':'../x'},{'name':'t','type':'fulltext','stop_words':['a'*100000]},{'name':'t','type':['exact']*1000},{'name':'@secret','type':'exact'},{'name':'@path','type':'exact','source':['x']},{'name':'../x','type':'exact'},{'name':'a\x00b','type':'exact'},{'name':'\ud800','type':'exact'},{'name':'t','type':'exact','source':[True]},{'name':'t','type':'exact','source':[1e300]},{'name':'t','type':'exact','source':[10**40]},{'name':'t','type':'exact','source':[-10**30]},{'name':'t','type':'fulltext','stop_words':[]},{'name':'t','type':'exact','value_type':'array'}):
    t=time.time(); r=P('gus field '+str(f)[:60],G,'/pub/.svc-config/indexes.json',{'glob':'**/*','indexes':[f]})
    if time.time()-t>1: print('  SLOW',time.time()-t)
    if r[0]<300:
        t=time.time(); s.put('/pub/redos.json',{'a'*256:1,'b':2,'w'*256:3},token=G); x=s.query('/pub',{'field':f['name'],'op':'exists'},G); dt=time.time()-t
        print('   ->',x[0],round(dt,2), [q['path'] for q in x[1].get('results',[])] if x[0]==200 else x[1])
        st=s.q('GET','/query/status?path=/pub'); print('   failures',st[1].get('failures') if st[0]==200 else st)
for pn in ('pdf','nosuch','../x','__import__','json','',5,'json\x00'): P('gus parser '+repr(pn),G,'/pub/.svc-config/indexes.json',{'glob':'**/*','parser':pn,'indexes':[{'name':'t','type':'exact'}]})
print('gus status', s.q('GET','/query/status?path=/pub',token=G)[0], s.q('GET','/query/status',token=G)[0], [ (i) for i in s.q('GET','/query/status?path=/pub',token=G)[1].get('indexes',[])][:3], s.q('GET','/query/status?path=/pub',token=G)[1].get('documents'))
print('gus via link status', s.q('GET','/query/status?path=/pub/lnk',token=G))
# timing of hidden search: does count/timing differ
# past: deleted file via version for a user without d
s.put('/pub/gone.json',{'t':'gonemark','n':9}); v=None
import http.client
def headv():
    c=http.client.HTTPConnection('127.0.0.1',s.port); c.request('HEAD','/files/',headers={'Authorization':'Bearer '+R}); return c.getresponse().getheader('X-Svc-Version')
s.put('/pub/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','fulltext']},{'name':'n','type':'exact'}]})
v=headv(); s.q('POST','/versions/snapshots',{'name':'sn'}); s.q('DELETE','/files/pub/gone.json'); s.put('/pub/a1.json',{'t':'newval','n':1})
ian=user('ian',[('/pub','-r--l---',None)]); I=key_of(ian)
for k in ({'version':v},{'snapshot':'sn'}):
    for w in ([],{'field':'t','op':'eq','value':'gonemark'},{'field':'t','op':'search','value':'gonemark'},{'field':'@filename','op':'eq','value':'gone.json'}):
        r=s.query('/pub',w,I,**k); print('ian past',k.keys(),w and w['op'],[x['path'] for x in r[1]['results']] if r[0]==200 else r)
    print(s.query('/pub',[],I,aggregate={'count':True,'max':['n']},**k))
# system namespace
for p in ('/.svc','/.svc/users','/_svc','/system/users','/.svc-system','/.svc-config'):
    r=s.query(p,[]); print('root sys',p,r[0],str(r[1])[:100])
r=s.allpaths('/',[]); print('root all', [x for x in r if not x.startswith(('/pub','/priv'))][:10])
# suggest via HTTP by users?
for rt in (('GET','/query/suggest?path=/priv'),('POST','/query/suggest')): print(rt,s.q(*rt,token=I)[0])
# cursor forging: reuse root's cursor by ian
r=s.query('/',[],limit=1,order_by=[{'field':'t','direction':'desc'}]); c=r[1].get('next_cursor'); print('cursor',c)
print(s.query('/pub',[],I,limit=3,order_by=[{'field':'t','direction':'desc'}],after=c)[1].get('results'))
for bad in ('','x','A'*100000,c[:-2]+'AA',c[::-1]): print('badcursor',s.query('/',[],limit=1,order_by=[{'field':'t','direction':'desc'}],after=bad)[0])
# errors oracle of hidden field
for n in ('secretfield','nofield'): print('oracle',n,s.query('/',{'field':n,'op':'exists'},I)[1], s.query('/',{'field':n,'op':'eq','value':1},I,explain=True)[1], s.query('/',[],I,order_by=[{'field':n}])[1].get('error'), s.query('/',[],I,select=[n])[0])
s.stop()
