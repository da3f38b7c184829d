import sys; sys.path.insert(0,'/tmp/attackq')
from h import *
d='/tmp/attackq/edge'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
def head():
    import http.client
    c=http.client.HTTPConnection('127.0.0.1',s.port); c.request('HEAD','/files/'); r=c.getresponse(); return r.getheader('X-Svc-Version')
s.put('/.svc-config/indexes.json',{'glob':'**/*','indexes':[{'name':'t','type':['exact','trigram','fulltext','phonetic']},{'name':'i','type':'exact','value_type':'integer','source':['n']},{'name':'n','type':'exact'},{'name':'s','type':'exact','value_type':'string','source':['n']},{'name':'ts','type':'exact','value_type':'timestamp','source':['n']},{'name':'f','type':'exact','value_type':'float','source':['n']},{'name':'@path','type':['exact','trigram']},{'name':'@filename','type':['exact','trigram']}]})
nums=['1','1.0','-0.0','0','9007199254740993','9007199254740992.0','18446744073709551615','18446744073709551616','-9223372036854775809','1e308','-1e308','5e-324','"1"','"1e5"','true','null','[]','[1]','{}','""','" 1 "','"٣"','"1_000"','"0x10"','"nan"','"Infinity"','"2026-01-01"','"2026-01-01T00:00:00+14:00"','"2026-02-30"','"0001-01-01"','"9999-12-31T23:59:59Z"','1e400','"'+'9'*999+'"','"'+'9'*1001+'"','9'*300,'9'*4000,'"12\\u0000"','"\\u0000"','1E2','-1','"-"','"+1"']
for k,n in enumerate(nums): 
    st=s.put(f'/n/v{k}.json',('{"n":%s,"t":"v%d"}'%(n,k)).encode())
names=['é.json','é.json','a b.json','a%20b.json','a?b.json','a#b.json','ÅÅ.json','\u202eevil.json','😀.json','A.JSON','.hidden','..x','x.','no ext','tab\tx.json',"q'uote\".json",'ﬁne.txt','İ.json','ß.json','\u0001ctl.json','long'+'x'*240]
made=[]
for n in names:
    r=s.q('PUT','/files/u/'+urllib.parse.quote(n).replace('%','%25') if 0 else '/files/u/'+n.replace('%','%25').replace('?','%3F').replace('#','%23').replace('\t','%09').replace('\x01','%01'),b'{"t":"x"}',headers={'Content-Type':'application/json'}); 
    if r[0]==201: made.append('/u/'+n)
    else: print('name',repr(n),r[0],r[1].get('error') if isinstance(r[1],dict) else '')
import unicodedata
bad=0
def chk(p,w,**k):
    global bad
    v=head(); a=s.allpaths(p,w,**k); b=s.allpaths(p,w,version=v,**k)
    if a!=b and not (isinstance(a,list) and isinstance(b,list) and sorted(a)==sorted(b) and not k.get('order_by')): bad+=1; print('DIFF',p,w,k,str(a)[:300],'|',str(b)[:300])
    return a
for st in made:
    a=s.allpaths('/u',{'field':'@path','op':'eq','value':unicodedata.normalize('NFC',st)}); b=s.allpaths('/u',{'field':'@path','op':'eq','value':st})
    if st not in (a if isinstance(a,list) else []) and not a: print('name lost',repr(st),a,b)
for f in ('n','i','s','ts','f'):
    for op in ('eq','ne','lt','gte','in','prefix'):
        for v in (1,1.0,0,-0.0,2**53,2**53+1,2**64,-2**63-1,1e308,5e-324,'1','1e5',True,None,'','2026-01-01',1767225600000,'9'*999,10**300):
            if op=='in': v=[v,'x']
            if op=='prefix' and not isinstance(v,str): continue
            chk('/n',{'field':f,'op':op,'value':v})
    for dr in ('asc','desc'): chk('/n',[],order_by=[{'field':f,'direction':dr}],limit=7)
    a=s.query('/n',[],aggregate={'count':True,'sum':[f],'avg':[f],'min':[f],'max':[f]}); b=s.query('/n',[],aggregate={'count':True,'sum':[f],'avg':[f],'min':[f],'max':[f]},version=head()); b[1].pop('meta',0)
    if a!=b: print('AGG',f,str(a)[:300],str(b)[:300])
    a=s.query('/n',[],limit=1000,aggregate={'count':True,'group_by':[f]}); b=s.query('/n',[],limit=1000,aggregate={'count':True,'group_by':[f]},version=head()); b[1].pop('meta',0)
    if a!=b or a[0]!=200: print('GRP',f,str(a)[:300],str(b)[:300])
for p in ('/u','/'):
    for dr in ('asc','desc'):
        for f in ('@path','@filename','@extension','@size'): chk(p,[],order_by=[{'field':f,'direction':dr}],limit=5)
    for v in ('É','é','e','ss','ß','I','i','İ','fi','ﬁ','\u0000','😀',' ','"',"'"):
        for op in ('contains','prefix','eq','similar','match'): chk(p,{'field':'@filename','op':op,'value':v})
# long values
L='ab'*5000; s.put('/l/a.json',{'t':L+'x'}); s.put('/l/b.json',{'t':L+'y'}); s.put('/l/c.json',{'t':'ab'*600000})
for w in ({'field':'t','op':'eq','value':L+'x'},{'field':'t','op':'gt','value':L+'x'},{'field':'t','op':'prefix','value':L},{'field':'t','op':'between','value':L,'value2':L+'x'},{'field':'t','op':'in','value':[L+'y']},{'field':'t','op':'ne','value':L+'y'},{'field':'t','op':'contains','value':L[-1000:]+'y'}): print('long',w['op'],chk('/l',w))
for dr in ('asc','desc'): chk('/l',[],order_by=[{'field':'t','direction':dr}],limit=1)
print('bad',bad)
s.stop(); print([l for l in open(d+'/x.svcdb.log') if 'Error' in l][:5])
