# random structural operations; index answer vs version= walk, both workers, CLI when stopped
import sys; sys.path.insert(0,'/tmp/attackq'); sys.path.insert(0,'/work/wt/attackq/tests')
from h import *
seed=int(sys.argv[1]); end=time.time()+float(sys.argv[2]); rng=random.Random(seed)
from query_model.documents import document
d=f'/tmp/attackq/wrong{seed}'; shutil.rmtree(d,ignore_errors=True); os.makedirs(d)
s=S(d+'/x.svcdb')
TYPES=[["exact"],["exact","trigram"],["exact","trigram","phonetic","fulltext"],["trigram","fulltext"]]
DIRS=['','/b','/b/n','/b/n/ü x','/b/o','/c','/c/a%b','/d']
def path(dr): return urllib.parse.quote(dr)
def cfg():
    f=[]
    for n,srcs,vts in [('title',[['title'],['author','name'],['tags','']],['auto','string','text']),('year',[['year'],['published','year'],['mixed']],['auto','integer','float','string']),('tags',[['tags',''],['list','']],['auto','string']),('mixed',[['mixed'],['list',-1],['/^note_/i']],['auto','string','float','timestamp','boolean'])]:
        if rng.random()<.7:
            e={'name':n,'type':rng.choice(TYPES),'source':rng.choice(srcs),'value_type':rng.choice(vts)}
            f.append(e)
    for n in ('@filename','@path','@size','@updated_at','@extension'):
        if rng.random()<.4: f.append({'name':n,'type':rng.choice(TYPES[:2])})
    return {'glob':rng.choice(['**/*','**/*.json','*','*.json','n/**','?*/*.json','**/*[0-4].json']),'indexes':f,'compression':rng.choice(['zstd','none'])}
N=0
def rnd_path(): return rng.choice(DIRS)+f'/{rng.choice(["f","é","a b"])}{rng.randrange(25)}.{rng.choice(["json","json","json","txt","JSON"])}'
def U(p): return urllib.parse.quote(p)
def post(route,body): return s.q('POST',route,body)
snaps=[];hist=[]
def op():
    r=rng.random()
    if r<.5:
        p=rnd_path(); doc=document(rng)
        if rng.random()<.1: doc['title']='long '+'war '*rng.randrange(100,2000)
        b=json.dumps(doc).encode() if not p.endswith('txt') else rng.choice([b'some text war',b'',b'\xff\xfe\x00'])
        if rng.random()<.03: b=b'{"broken'
        o=('put',p); r_=s.q('PUT','/files'+p.replace('%','%25'),b,headers={'Content-Type':'application/json' if not p.endswith('txt') else 'text/plain'})
    elif r<.6: p=rnd_path(); o=('del',p); r_=s.q('DELETE','/files'+p.replace('%','%25'))
    elif r<.64:
        a,b=rng.choice(DIRS[1:]),rng.choice(DIRS[1:]); o=('mv',a,b); r_=post('/files/batch',{'operations':[{'op':'move','path':a,'to':b+'/mv'+str(rng.randrange(3)),'overwrite':True}]})
    elif r<.66:
        a=rng.choice(DIRS[1:]); o=('mvout',a); r_=post('/files/batch',{'operations':[{'op':'move','path':rng.choice(DIRS[1:])+'/mv'+str(rng.randrange(3)),'to':a}]})
    elif r<.70:
        a,b=rng.choice(DIRS),rng.choice(DIRS[1:]); o=('cp',a,b); r_=post('/files/batch',{'operations':[{'op':'copy','path':rng.choice(DIRS[1:]),'to':b+'/cp'+str(rng.randrange(2)),'overwrite':True}]})
    elif r<.73:
        a=rng.choice(DIRS[1:]); o=('rmr',a); r_=s.q('DELETE','/files'+a.replace('%','%25')+'?recursive=true')
    elif r<.76:
        k=rng.randrange(1,12); a=rng.choice(DIRS); o=('batch',a); r_=post('/files/batch',{'operations':[{'op':'put','path':rnd_path(),'content':json.dumps(document(rng)),'content_type':'application/json'} for _ in range(k)]})
    elif r<.92 and True:
        a=rng.choice(DIRS+[x+'/mv0' for x in DIRS]); c=cfg(); c['glob']='**/*' if a=='' else c['glob']; o=('cfg',a,c)
        r_=s.q('PUT','/files'+a.replace('%','%25')+'/.svc-config/indexes.json',json.dumps(c).encode(),headers={'Content-Type':'application/json'})
        if r_[0]>=300: print('cfg refused',r_,c)
    elif r<.94:
        a=rng.choice(DIRS); o=('cfgdel',a); r_=s.q('DELETE','/files'+a.replace('%','%25')+'/.svc-config/indexes.json')
    elif r<.96:
        n='s%d'%len(snaps); r_=post('/versions/snapshots',{'name':n}); o=('snap',n)
        if r_[0]==201: snaps.append(n)
    elif r<.98 and snaps: o=('restore',); r_=post('/versions/restore',{'name':rng.choice(snaps)})
    elif snaps:
        n='f%d'%rng.randrange(10**9); o=('promote',n); post('/versions/forks',{'name':n,'base':rng.choice(snaps)})
        for _ in range(3): s.q('PUT','/files'+rnd_path().replace('%','%25')+'?fork='+n,json.dumps(document(rng)).encode(),headers={'Content-Type':'application/json'})
        r_=post(f'/versions/forks/{n}/promote',{'force':True})
    else: return
    hist.append((o,r_[0]))
    if r_[0]>=500: print('5xx',o,r_)
WHERE=[[],{'field':'year','op':'gt','value':1980},{'field':'year','op':'exists'},{'field':'year','op':'exists','value':False},{'field':'title','op':'contains','value':'war'},{'field':'title','op':'contains','value':'a'},
 {'field':'title','op':'similar','value':'war peace','threshold':0.1},{'field':'title','op':'prefix','value':'w'},{'field':'mixed','op':'eq','value':None},{'field':'mixed','op':'ne','value':1},{'field':'mixed','op':'in','value':[1,'1',True,None,2**53]},{'field':'mixed','op':'gte','value':''},{'not':{'field':'title','op':'fuzzy','value':'tolstoi'}},
 {'field':'tags','op':'eq','value':'war'},{'field':'tags','op':'similar','value':'war','threshold':0.2},{'field':'tags','op':'ne','value':'war'},{'field':'title','op':'phonetic','value':'tolstoi'},{'field':'@filename','op':'contains','value':'f1'},{'field':'@path','op':'prefix','value':'/b/n'},{'field':'@extension','op':'eq','value':'json'},{'field':'@size','op':'gt','value':100},
 {'or':[{'field':'year','op':'lt','value':5},{'not':{'field':'mixed','op':'exists'}}]},{'field':'mixed','op':'between','value':-1e300,'value2':1e300},{'field':'title','op':'match','value':'war'}]
def check():
    v=None
    st,x=s.q('GET','/files/?depth=-1&limit=10000')
    import http.client
    c=http.client.HTTPConnection('127.0.0.1',s.port); c.request('HEAD','/files/'); r=c.getresponse(); v=r.getheader('X-Svc-Version'); c.close()
    base=rng.choice(['/','/','/b','/b/n','/c'])
    for w in rng.sample(WHERE,8):
        k={'order_by':rng.choice([[],[{'field':rng.choice(['year','title','mixed','@size','@path']),'direction':rng.choice(['asc','desc'])}]])}
        k['limit']=rng.choice([1000,1000,7])
        if not k['order_by']: 
            del k['order_by']
        full=k.get('order_by')
        a=s.allpaths(base,w,**k); b=s.allpaths(base,w,version=v,**k)
        ag={'aggregate':{'count':True,'sum':['year'],'min':['mixed'],'max':['title'],'group_by':['year']}} if rng.random()<.5 else {'aggregate':{'count':True,'sum':['year'],'avg':['mixed'],'max':['mixed']}}
        c1=s.query(base,w,limit=1000,**ag); c2=s.query(base,w,limit=1000,version=v,**ag)
        c1[1].pop('meta',0); c2[1].pop('meta',0)
        if any(isinstance(x,tuple) and x[0] in (400,404) for x in (a,b)): continue
        if c2[0]==400 or c1[0]==400: c1=c2
        if isinstance(a,tuple) and isinstance(b,tuple):
            if a[0]!=b[0] or a[0] >=500: print('ERRDIFF',base,w,k,a,b)
            continue
        bad = (type(a)!=type(b)) or (a!=b if full else sorted(a)!=sorted(b))
        if bad or (c1!=c2 and c2[0]!=400):
            print('DIFF',seed,len(hist),base,w,k,ag); print(' idx-walk',set(a)-set(b) if type(a)==type(b) else a, ' walk-idx', set(b)-set(a) if type(a)==type(b) else b, c1 if c1!=c2 else '', c2 if c1!=c2 else '')
            print(' configs',[(h[0][1],h[0][2]) if h[0][0]=='cfg' else h[0][:3] for h in hist if h[0][0] in ('cfg','cfgdel','restore','promote','mv','cp','rmr','K','R') or 'K' in str(h[0])][-14:]); print(' version',v, 'now', s.q('GET','/query/status')[1]['sequence']); print(' rootcfg', s.q('GET','/files/.svc-config/indexes.json')[1], s.q('GET','/files/.svc-config/indexes.json?version='+v)[1])
            print(' last ops',[(h[0][0],*(h[0][1:3] if h[0][0] in ('mv','cp') else h[0][1:2]),h[1]) if isinstance(h[0],tuple) else h for h in hist[-14:]]); print(s.query(base,w,explain='analyze',limit=20)[1].get('plan')); print([(x['path'],[(f['name'],f['types']) for f in x.get('fields',[]) if f['name'] in json.dumps(w)]) for x in s.q('GET','/query/status')[1]['directories']])
            time.sleep(3); a2=s.allpaths(base,w,**k); print(' after 3s equal:', isinstance(b,tuple) or isinstance(a2,tuple) or a2==b if full else sorted(a2)==sorted(b)); sys.stdout.flush()
            return False
    return True
n=0; bads=0
while time.time()<end and bads<6:
    for _ in range(rng.randrange(1,8)): op()
    r=rng.random()
    if r<.02:
        hist.append(('KILL9',0)); s.kill(); 
        if rng.random()<.5: shutil.rmtree(d+'/x.svcdb.d'); hist.append(('RMSTATE',0))
        s.start()
    elif r<.05:
        for p,c in s.pids():
            if 'background' in c: os.kill(p,9); hist.append(('KILLBG',0))
    elif r<.07:
        ps=[p for p,c in s.pids() if p!=s.p.pid and 'background' not in c]
        if ps: os.kill(rng.choice(ps),9); hist.append(('KILLW',0)); time.sleep(1)
    try: ok=check()
    except Exception as e: print('EXC',repr(e)); ok=True
    n+=1
    if not ok: bads+=1
print('checks',n,'bads',bads,'ops',len(hist), time.strftime('%T')); 
from collections import Counter; print(Counter((o[0][0],o[1]) for o in hist))
s.stop()
